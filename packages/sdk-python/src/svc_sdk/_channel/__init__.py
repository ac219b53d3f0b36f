"""The command channel of a sandbox: processes, files and TCP connections over one WebSocket."""
