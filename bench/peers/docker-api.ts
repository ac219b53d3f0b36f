import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

const VERSION = '/v1.40';

/** A container engine behind the Docker API on a unix socket: Docker itself, or Podman's service. */
export class DockerApi {
  readonly #socketPath: string;
  readonly #image: string;
  readonly #cgroup: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });

  /** `cgroup`: below which its containers get theirs. */
  constructor(socketPath: string, image: string, cgroup: string) {
    this.#socketPath = socketPath;
    this.#image = image;
    this.#cgroup = cgroup;
  }

  /** Rejects while it does not answer or lacks the image. */
  async findImage(): Promise<void> {
    await this.#call('GET', `/images/${this.#image}/json`);
  }

  /** A container that waits, with the network that this engine gives by default. */
  async create(): Promise<string> {
    const host = { CgroupParent: this.#cgroup };
    const config = { Image: this.#image, Cmd: ['/bin/sleep', '100000'], HostConfig: host };
    const { Id: id } = JSON.parse(await this.#call('POST', '/containers/create', config)) as { Id: string };
    await this.#call('POST', `/containers/${id}/start`);
    return id;
  }

  /** Runs it to its end, with its output. */
  async exec(id: string, command: readonly string[]): Promise<string> {
    const config = { AttachStdout: true, AttachStderr: true, Cmd: command };
    const made = JSON.parse(await this.#call('POST', `/containers/${id}/exec`, config)) as { Id: string };
    return await this.#call('POST', `/exec/${made.Id}/start`, { Detach: false, Tty: false });
  }

  async remove(id: string): Promise<void> {
    await this.#call('DELETE', `/containers/${id}?force=true&v=true`);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #call(method: string, path: string, body?: object): Promise<string> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const content = body === undefined ? '' : JSON.stringify(body);
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) };
      const options = { socketPath: this.#socketPath, agent: this.#agent, method, headers };
      const outgoing = request({ ...options, path: VERSION + path }, resolve);
      outgoing.once('error', reject);
      outgoing.end(content);
    });
    const answer = await text(response);
    const { statusCode = 0 } = response;
    if (statusCode >= 400) throw new Error(`${method} ${path}: ${statusCode} ${answer.trim()}`);
    return answer;
  }
}
