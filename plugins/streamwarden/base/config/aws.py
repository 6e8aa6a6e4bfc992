"""Settings of AWS accounts, and of logins to Amazon MSK with AWS credentials."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from streamwarden.base.config.fields import Name, Section
from streamwarden.base.config.units import AccountId, Region


class AwsAccount(Section):
    """An AWS account with volumes and instances to watch. Credentials come from boto3's default provider chain."""

    account: AccountId = Field(description="The 12-digit account id.")
    regions: list[Region] = Field(min_length=1, description="Regions to read, e.g. eu-central-1.")
    role_arn: str | None = Field(
        None, description="Role to assume in that account; empty: use the credentials directly."
    )
    external_id: str | None = Field(None, description="External id of the role's trust policy.")


class AwsLogin(Section):
    """How Kafka clients log in to a cluster of Amazon MSK with what AWS holds: an IAM identity, or a secret."""

    account: AccountId = Field(description="The 12-digit account id of the cluster.")
    region: Region = Field(description="Its region.")
    authentication: Literal["iam", "scram"] = Field(
        "iam", description="`iam`: the AWS credentials sign a token. `scram`: user and password of `secret`."
    )
    secret: Name | None = Field(
        None,
        description="`scram`: name or ARN of the secret in AWS Secrets Manager (`AmazonMSK_…`).",
    )

    @model_validator(mode="after")
    def _scram_has_a_secret(self) -> AwsLogin:
        if (self.authentication == "scram") != (self.secret is not None):
            raise ValueError("`secret` names user and password of `authentication: scram`; no other has it")
        return self
