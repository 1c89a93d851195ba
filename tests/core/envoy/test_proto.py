"""The generated code is what the .proto file says, and both are what Envoy says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from semmem._proto import semmem_ext_proc_pb2 as pb

ROOT = Path(__file__).parents[3]


def test_the_committed_code_is_what_the_proto_file_generates(tmp_path: Path) -> None:
    source = ROOT / "proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{source}", f"--python_out={tmp_path}"]
    subprocess.run([*command, f"--pyi_out={tmp_path}", str(source / "semmem_ext_proc.proto")], check=True)
    for made in tmp_path.iterdir():
        assert made.read_text() == (ROOT / "semmem" / "_proto" / made.name).read_text(), "run `make proto`"


def test_field_numbers_are_envoys() -> None:
    """The numbers that a mistake would break silently; a real Envoy speaks them in tests/e2e."""

    def number(message: str, field: str) -> int:
        return int(pb.DESCRIPTOR.message_types_by_name[message].fields_by_name[field].number)

    assert number("HeaderValue", "raw_value") == 3
    assert number("HttpHeaders", "end_of_stream") == 3
    assert number("ProcessingRequest", "metadata_context") == 8
    assert number("ProcessingRequest", "observability_mode") == 10
    assert number("ProcessingResponse", "dynamic_metadata") == 8
    assert number("ProcessingResponse", "mode_override") == 9
    assert number("CommonResponse", "header_mutation") == 2
    assert number("CommonResponse", "body_mutation") == 3
