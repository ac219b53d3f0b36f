"""The source of both APIs: the synchronous one is generated from it by `make generate`."""
