"""Envoy's door: ext_proc over gRPC. Protobuf in, plain calls to the exchange, protobuf out. Nothing else."""
