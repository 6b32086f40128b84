"""From a jaxpr to steps: one rule per operation."""
