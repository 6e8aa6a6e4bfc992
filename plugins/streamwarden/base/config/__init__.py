"""The config file of a deployment, `streamwarden.yaml`."""

from streamwarden.base.config.aws import AwsAccount, AwsLogin
from streamwarden.base.config.detectors import DetectorException
from streamwarden.base.config.interfaces import Reports
from streamwarden.base.config.jmx import JmxEc2, JmxEndpoint, JmxFiles
from streamwarden.base.config.kafka import ConnectCluster, KafkaCluster, MskClusters
from streamwarden.base.config.kubernetes import KubernetesCluster
from streamwarden.base.config.load import CONFIG_ENV, SENT_CONFIG_ENV, WAREHOUSE_ENV, config_path, load_config
from streamwarden.base.config.model import Config, Warehouse
from streamwarden.base.config.tickets import Tickets

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
