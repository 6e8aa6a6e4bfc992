"""The config file of a deployment, `streamwarden.yaml`."""

from streamwarden.base.config.kubernetes import KubernetesCluster
from streamwarden.base.config.load import CONFIG_ENV, SENT_CONFIG_ENV, WAREHOUSE_ENV, config_path, load_config
from streamwarden.base.config.model import (
    AwsAccount,
    AwsLogin,
    Config,
    ConnectCluster,
    DetectorException,
    JmxEc2,
    JmxEndpoint,
    JmxFiles,
    KafkaCluster,
    MskClusters,
    Reports,
    Tickets,
    Warehouse,
)

__all__ = [
    "CONFIG_ENV",
    "SENT_CONFIG_ENV",
    "WAREHOUSE_ENV",
    "AwsAccount",
    "AwsLogin",
    "Config",
    "ConnectCluster",
    "DetectorException",
    "JmxEc2",
    "JmxEndpoint",
    "JmxFiles",
    "KafkaCluster",
    "KubernetesCluster",
    "MskClusters",
    "Reports",
    "Tickets",
    "Warehouse",
    "config_path",
    "load_config",
]
