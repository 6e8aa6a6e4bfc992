"""Settings of the trackers, one class for each kind; the module of that name under tickets/sinks files into it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from streamwarden.base.config.fields import Name, SafeAddress, Section

TrackerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class Credentials(Section):
    """How a tracker knows who asks."""

    needs: ClassVar[str] = "`password`"

    user: str | None = Field(None, description="User that files tickets, where the tracker wants one.")
    password: str | None = Field(None, repr=False, description="Its password or token, as `${NAME}`.")
    connection: Name | None = Field(
        None, description="Airflow connection that has login and password instead of `user` and `password`."
    )

    @model_validator(mode="after")
    def _are_told_once(self) -> Any:
        if bool(self.password) == bool(self.connection):
            raise ValueError(f"needs {self.needs} (as ${{NAME}}), or `connection`, and not both")
        return self


class Answers(Credentials):
    """Labels by which people answer."""

    acknowledged: Name = Field("acknowledged", description="Label: somebody works on it.")
    snoozed: Name = Field("snoozed", description="Label: quiet for seven days, but for a rise in severity.")
    wont_fix: Name = Field("wont-fix", description="Label: it won't be fixed; closed for good.")


class Console(Section):
    """The task's log; for a look at what would be filed."""

    kind: Literal["console"] = Field("console", description="`console`")


class Roundup(Credentials):
    """A Roundup tracker."""

    needs: ClassVar[str] = "`user` and `password`"

    kind: Literal["roundup"] = Field("roundup", description="`roundup`")
    url: SafeAddress = Field(description="Address of the tracker.")


class Github(Answers):
    """Issues of a GitHub repository, also GitHub Enterprise. `password` is the token."""

    kind: Literal["github"] = Field("github", description="`github`")
    url: SafeAddress = Field(
        "https://api.github.com", description="Address of the API; of an Enterprise server https://HOST/api/v3."
    )
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="owner/name of the repository.")
    label: Name = Field("streamwarden", description="Label that all tickets have; they are found by it.")
    labels: list[Name] = Field(default_factory=list, description="Further labels.")
    assignees: list[Name] = Field(default_factory=list, description="Who is assigned.")


Tracker = Annotated[Console | Roundup | Github, Field(discriminator="kind")]
