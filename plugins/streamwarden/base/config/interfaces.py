"""Settings of outputs: reports, the Prometheus page, and links to other systems."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.catalog import KINDS
from streamwarden.base.config.fields import MailSender, Name, Section, WebAddress


class Reports(Section):
    """The scheduled reports."""

    folder: Path = Field(Path("var/reports"), description="Folder of the HTML files, relative to the project.")
    mail_to: list[MailSender] = Field(default_factory=list, description="Recipients; empty: no mail.")
    mail_from: MailSender = Field("streamwarden@localhost", description="Sender.")


class Prometheus(Section):
    """The page `/streamwarden/metrics` for a Prometheus server. Without a token, it is off."""

    token: str | None = Field(
        None, min_length=16, repr=False, description="Bearer token that the server sends, as `${NAME}`."
    )
    connection: Name | None = Field(None, description="Airflow connection that has it as password instead of `token`.")
    lag_series: int = Field(
        1000,
        ge=0,
        le=50_000,
        description="Maximum number of pairs of group and topic with lag series; those that are furthest behind are"
        " exposed.",
    )

    @model_validator(mode="after")
    def _has_one_token(self) -> Prometheus:
        if self.token and self.connection:
            raise ValueError("needs `token` or `connection`, and not both")
        return self


def _is_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"there is no kind of resource '{kind}'; choose from {', '.join(KINDS)}")
    return kind


class ExternalLink(Section):
    """A link from the pages of resources to another system, e.g. the AWS console, a Kafka UI, Grafana, or logs."""

    name: Name = Field(description="Text of the link, e.g. `AWS console`.")
    kinds: list[Annotated[str, AfterValidator(_is_kind)]] = Field(
        min_length=1, description="Kinds of resources with this link, e.g. `[volume]`; the view `resource` lists all."
    )
    url: WebAddress = Field(
        description="URL with the key columns of the kind in braces, e.g."
        " `https://grafana.internal/d/topic?var-topic={topic}`. Values are percent-encoded; `{{` is a brace."
    )

    @model_validator(mode="after")
    def _names_key_columns(self) -> ExternalLink:
        try:
            parts = [(name, spec, how) for _, name, spec, how in Formatter().parse(self.url) if name is not None]
        except ValueError as error:
            raise ValueError(f"`url` is not a template: {error}") from None
        if any(spec or conversion for _, spec, conversion in parts):
            raise ValueError("`url` has a format in braces; only names of key columns are allowed there")
        fields = [field for field, _, _ in parts]
        for kind in self.kinds:
            if unknown := sorted({*fields} - {*KINDS[kind]}):
                known = ", ".join(f"{{{column}}}" for column in KINDS[kind])
                raise ValueError(f"`url` has {{{unknown[0]}}}; a {kind} has {known}")
        return self
