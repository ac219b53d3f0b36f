import type { Sandbox } from '@svc/sdk';

const FOLDER = '/usr/local/share/jupyter/kernels';

/** Repeats what it is told, and does what some words ask for, in the ways in which kernels differ from that of Python. */
const ECHO = `
import os, time
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Echo(Kernel):
    implementation = language = "echo"
    implementation_version = language_version = "1"
    language_info = {"name": "echo", "mimetype": "text/plain", "file_extension": ".txt"}
    banner = "echo"
    heard = 0

    def say(self, kind, content):
        self.send_response(self.iopub_socket, kind, content)

    def do_execute(self, code, *words, **more):
        self.heard += 1
        if code == "show":
            self.say("display_data", {"data": {"image/png": "iVBORw0KGgo=", "application/json": {"n": 1}}, "metadata": {}})
        elif code == "fail":
            # In the reply alone.
            return {"status": "error", "ename": "EchoError", "evalue": "no", "traceback": []}
        elif code == "wait":
            self.say("stream", {"name": "stdout", "text": "begun\\n"})
            # An interrupt ends it without a reply.
            time.sleep(600)
        elif code == "ask":
            # Although the request said that stdin is closed.
            self._allow_stdin = True
            self.raw_input("name? ")
        elif code == "die":
            os._exit(7)
        else:
            text = "%d %s" % (self.heard, code)
            self.say("execute_result", {"execution_count": self.heard, "data": {"text/plain": text}, "metadata": {}})
        return {"status": "ok", "execution_count": self.heard, "payload": [], "user_expressions": {}}

IPKernelApp.launch_instance(kernel_class=Echo)
`;

/** Adds the kernels `echo`, and `broken`, which ends at once. */
export async function addKernels(box: Sandbox): Promise<void> {
  const program = `${FOLDER}/echo/echo_kernel.py`;
  const specs = {
    echo: ['python3', program, '-f', '{connection_file}'],
    broken: ['sh', '-c', 'echo "it has no licence" >&2; exit 3'],
  };
  for (const [name, argv] of Object.entries(specs)) {
    const spec = { argv, display_name: name, language: name };
    await box.commands.run('mkdir', ['-p', `${FOLDER}/${name}`]);
    await box.files.write(`${FOLDER}/${name}/kernel.json`, JSON.stringify(spec));
  }
  await box.files.write(program, ECHO);
}
