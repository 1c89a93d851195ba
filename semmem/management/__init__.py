"""The operator's door: REST, health and metrics over HTTP. The same store and journal as the request path uses."""
