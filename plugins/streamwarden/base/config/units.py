"""Bounded numbers and AWS names that several sections share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Days = Annotated[int, Field(le=36_500)]

Seconds = Annotated[float, Field(gt=0, le=3600)]

AccountId = Annotated[str, Field(pattern=r"^\d{12}$")]

Region = Annotated[str, Field(pattern=r"^[a-z]{2,4}(-[a-z]+){1,2}-\d{1,2}$")]
