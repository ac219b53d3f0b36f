# Uses the newest published client as a library, and prints what it saw as JSON.
import asyncio
import json
import os
import sys

from microsandbox import Sandbox, Secret, SecretSubstitution


async def main(image: str) -> dict:
    sandbox = await Sandbox.create(
        "from-python",
        image=image,
        env={"A": "1"},
        workdir="/tmp",
        secrets=[
            Secret.env(
                "KEY",
                value="sk-never-inside",
                allow=["api.example.com"],
                allow_placeholder_for=["*.other.example"],
                substitution=SecretSubstitution(header_fields=("Authorization",), query=True),
            )
        ],
    )
    ran = await sandbox.shell('echo "$A $KEY"; pwd; exit 3')
    await sandbox.fs.write("/tmp/kept", b"bytes")
    kept = await sandbox.fs.read_text("/tmp/kept")
    await sandbox.stop()
    handle = await Sandbox.get("from-python")
    again = await (await handle.start()).exec("cat", ["/tmp/kept"])
    return {
        "ran": [ran.exit_code, ran.stdout_text],
        "kept": kept,
        "again": [again.exit_code, again.stdout_text],
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))), flush=True)
# The library's threads may need the interpreter while it shuts down, and then the library aborts the process.
os._exit(0)
