"""Protobuf schemas: which values of one message a reader with another cannot read, by the wire format.

Fields are identified by their number; field and message names are irrelevant. Types with the same wire type can read
each other; strings, bytes, and messages may become repeated, numbers may not; unknown fields and enum constants are
skipped. A required field that the writer may omit breaks, and so does what a `oneof` cannot hold: two fields that
the writer may set at once, or one that the reader's `oneof` does not have.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path
from spark_apps.models.schema_changes import Clashes, NotComparable, Place

_GROUPS = {
    "number": ("INT32", "INT64", "UINT32", "UINT64", "BOOL", "ENUM"),
    "zigzag": ("SINT32", "SINT64"),
    "text": ("STRING", "BYTES"),
    "fixed32": ("FIXED32", "SFIXED32"),
    "fixed64": ("FIXED64", "SFIXED64"),
    "float": ("FLOAT",),
    "double": ("DOUBLE",),
    "message": ("MESSAGE",),
    "group": ("GROUP",),
}
_GROUP_OF = {getattr(FieldDescriptor, f"TYPE_{name}"): group for group, names in _GROUPS.items() for name in names}
_NAME_OF = {getattr(FieldDescriptor, f"TYPE_{name}"): name.lower() for names in _GROUPS.values() for name in names}
_MAIN = "streamwarden_value.proto"
_LONGEST_SECONDS = 60
_META_OF = {"FileOptions": "file", "MessageOptions": "message", "FieldOptions": "field", "EnumOptions": "enum"}
_SUPPLIED = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";'
    " message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }"
    + "".join(f" extend google.protobuf.{of} {{ Meta {name}_meta = 1088; }}" for of, name in _META_OF.items())
    + " extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }",
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    " message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
    "metadata/metadata.proto": 'syntax = "proto3"; package metadata; import "google/protobuf/descriptor.proto";'
    " extend google.protobuf.FieldOptions { string metadata_key = 50001; string metadata_value = 50002; }",
    "additionalTypes/decimal.proto": 'syntax = "proto3"; package additionalTypes;'
    " message Decimal { int64 units = 1; int32 fraction = 2; uint32 precision = 3; int32 scale = 4; }",
}
"""Files supplied by the serializers of Confluent, and of AWS Glue and Apicurio, which no registry holds; see
`_common_protos` too."""
Pairs = frozenset[tuple[Descriptor, Descriptor]]
"""Pairs of messages in comparison: a recursive one clashes only where it does so otherwise."""


class ProtobufSchema:
    """A message of a schema: the one that the indexes before a value select.

    Raises:
        NotComparable: it does not compile, or has no such message.
    """

    def __init__(self, definition: str, imports: Mapping[str, str], indexes: Iterable[int] = (0,)) -> None:
        file = _compiled(definition, tuple(sorted(imports.items())))
        messages = list(file.message_types_by_name.values())
        try:
            for index in indexes:
                self.message: Descriptor = messages[index]
                messages = [each for each in self.message.nested_types if not each.GetOptions().map_entry]
        except IndexError:
            raise NotComparable(f"has no message at the index {list(indexes)} that values use") from None

    def places(self) -> dict[Path, Place]:
        """Fields by path of field numbers; a recursive message appears once."""
        found: dict[Path, Place] = {(): Place((), f"message {self.message.name}")}
        _describe(self.message, (), (), (self.message,), found)
        return found

    def decoded(self, payload: bytes) -> Any:
        """The value after the frame and the message indexes."""
        return _plain(message_factory.GetMessageClass(self.message).FromString(payload))

    def clashes(self, writer: ProtobufSchema) -> Clashes:
        """Paths of field numbers at which a reader of this message cannot read all values of the writer's."""
        return dict.fromkeys(_clashes(self.message, writer.message, (), frozenset()), False)


@lru_cache(maxsize=200)
def _compiled(definition: str, imports: tuple[tuple[str, str], ...]) -> Any:
    """The descriptor of a file, compiled by protoc; each in its own pool, because versions share their names."""
    with TemporaryDirectory() as folder:
        for name, text in {**_SUPPLIED, **dict(imports), _MAIN: definition}.items():
            try:
                file = File(folder, name).resolve()
                file.relative_to(File(folder).resolve())
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            except (OSError, ValueError):
                raise NotComparable(f"imports {name!r}, which is not a relative file name") from None
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{folder}",
            f"-I{_common_protos()}",
            "--include_imports",
        ]
        made = File(folder) / "descriptors"
        command += [f"--descriptor_set_out={made}", _MAIN]
        try:
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotComparable(f"did not compile within {_LONGEST_SECONDS} s") from None
        if run.returncode != 0:
            lines = run.stderr.replace(f"{folder}/", "").splitlines()
            errors = [line for line in lines if re.match(r"[^ ]+\.proto:", line) and "warning" not in line]
            why = errors[0].removeprefix(f"{_MAIN}:") if errors else "no reason given"
            raise NotComparable(f"does not compile: {why}")
        files = FileDescriptorSet.FromString(made.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    return pool.FindFileByName(_MAIN)


@lru_cache(maxsize=1)
def _common_protos() -> File:
    """The folder of google/type and similar files, which every registry with Protobuf support has."""
    return File(str(resources.files("google.type").joinpath("money.proto"))).parents[2]


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return {field.name: _plain(each) for field, each in value.ListFields()}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [_plain(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _describe(
    message: Descriptor, path: Path, names: Path, within: tuple[Descriptor, ...], found: dict[Path, Place]
) -> None:
    for each in message.fields:
        at, named = (*path, f".{each.number}"), (*names, f".{each.name}")
        found[at] = Place(named, _type(each), optional=not each.is_required)
        inner = each.message_type
        if _is_map(each):
            at, named = (*at, ".2"), (*named, MAP_KEY)
            found[at] = Place(named, _type(inner.fields_by_number[2]), optional=True)
            inner = inner.fields_by_number[2].message_type
        elif each.is_repeated:
            named = (*named, ELEMENT)
        if inner is not None and inner not in within:
            _describe(inner, at, named, (*within, inner), found)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _type(field: FieldDescriptor) -> str:
    if _is_map(field):
        return f"map by {_type(field.message_type.fields_by_number[1])}"
    named = field.message_type or field.enum_type
    words = ["repeated" if field.is_repeated else "", _NAME_OF[field.type], named.name if named is not None else ""]
    oneof = _oneof(field)
    return " ".join(filter(None, [*words, f"of oneof {oneof}" if oneof else ""]))


def _oneof(field: FieldDescriptor | None) -> str | None:
    """The oneof of a field; the synthetic oneof of a proto3 `optional` field does not count."""
    if field is None or field.containing_oneof is None or field.containing_oneof.name == f"_{field.name}":
        return None
    return str(field.containing_oneof.name)


def _clashes(reader: Descriptor, writer: Descriptor, path: Path, seen: Pairs) -> Iterator[Path]:
    if (reader, writer) in seen:
        return
    seen |= {(reader, writer)}
    for number, field in reader.fields_by_number.items():
        at = (*path, f".{number}")
        written = writer.fields_by_number.get(number)
        if field.is_required and (written is None or not written.is_required):
            yield at
        elif written is not None:
            yield from _field_clashes(field, written, at, seen)
    for oneof in reader.oneofs:
        yield from ((*path, f".{number}") for number in _oneof_clashes(oneof, writer))


def _field_clashes(reader: FieldDescriptor, writer: FieldDescriptor, path: Path, seen: Pairs) -> Iterator[Path]:
    group = _GROUP_OF[reader.type]
    relabelled = reader.is_repeated != writer.is_repeated
    if group != _GROUP_OF[writer.type] or (relabelled and group not in ("text", "message")):
        yield path
    elif reader.message_type is not None:
        yield from _clashes(reader.message_type, writer.message_type, path, seen)


def _oneof_clashes(oneof: OneofDescriptor, writer: Descriptor) -> set[int]:
    """Numbers that the writer may set together with another field of the reader's oneof, or instead of all its
    fields."""
    known = {field.number for field in oneof.fields if _oneof(field)}
    homes = {number: _oneof(writer.fields_by_number[number]) for number in known.intersection(writer.fields_by_number)}
    is_one = len({*homes.values()}) == 1 and None not in homes.values()
    at_once = homes if len(homes) > 1 and not is_one else {}
    instead = {
        number
        for number, field in writer.fields_by_number.items()
        if _oneof(field) in {*homes.values()} - {None} and number not in oneof.containing_type.fields_by_number
    }
    return {*at_once, *instead}
