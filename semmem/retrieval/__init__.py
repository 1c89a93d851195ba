"""The request phase's pure steps: decide whether to search, build the query, search, rank, render within a budget.

No HTTP, no gRPC, no vendor names, no config objects; the few awaits are on ports, under the caller's deadline."""
