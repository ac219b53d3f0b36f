import { Sandbox, type Client } from '@svc/sdk';
import type { Isolation } from '@svc/engine/client';
import { BUSYBOX } from '../test/engine/start-engine.ts';

/** A continuous load of a guest that takes resources from its neighbours within the rules (test/security/noise.c). */
export interface Attack {
  readonly name: string;
  /** Needs a whole CPU: with more of them than CPUs every sandbox gets less. */
  readonly isBusy: boolean;
  /** The command of a shell inside. The output of a main command goes to the log, through the engine. */
  readonly main?: string;
  readonly script?: string;
}

/** How long an attack lasts: longer than a measurement. */
const ATTACK_SECONDS = 120;
const NAMESERVER = "$(sed -n 's/^nameserver //p' /etc/resolv.conf)";

export const NOISE_PLACE = '/noise';

export const ATTACKS: readonly Attack[] = [
  { name: 'yes', isBusy: false, main: `timeout ${ATTACK_SECONDS} yes` },
  { name: 'bytes', isBusy: false, main: waitFor(`${NOISE_PLACE} bytes ${ATTACK_SECONDS}`) },
  { name: 'dial', isBusy: true, script: `${NOISE_PLACE} dial ${ATTACK_SECONDS} /.svc/engine.sock` },
  { name: 'spin', isBusy: true, script: `${NOISE_PLACE} spin ${ATTACK_SECONDS}` },
  { name: 'fork', isBusy: true, script: `${NOISE_PLACE} fork ${ATTACK_SECONDS}` },
  { name: 'dns', isBusy: true, script: `${NOISE_PLACE} dns ${ATTACK_SECONDS} ${NAMESERVER}` },
  { name: 'connect', isBusy: true, script: `${NOISE_PLACE} connect ${ATTACK_SECONDS} 198.18.0.1` },
  { name: 'disk', isBusy: false, script: `${NOISE_PLACE} disk ${ATTACK_SECONDS} /file` },
];

/** The main command starts before the program is uploaded, so it waits for it. */
function waitFor(command: string): string {
  return `until [ -x ${NOISE_PLACE} ]; do sleep 0.1; done; exec ${command}`;
}

/** Starts this many sandboxes of another organization with the attack, until disposed of. */
export class Attackers implements AsyncDisposable {
  readonly #sandboxes: readonly Sandbox[];

  private constructor(sandboxes: readonly Sandbox[]) {
    this.#sandboxes = sandboxes;
  }

  static async start(
    client: Client,
    attack: Attack,
    { count, isolation, program }: { count: number; isolation: Isolation; program: Uint8Array },
  ): Promise<Attackers> {
    const sandboxes: Sandbox[] = [];
    const attackers = new Attackers(sandboxes);
    try {
      for (let started = 0; started < count; started++) {
        const cmd = attack.main === undefined ? {} : { cmd: ['/bin/sh', '-c', attack.main] };
        const sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation, spec: { runtime: cmd } });
        sandboxes.push(sandbox);
        await putNoise(sandbox, program);
      }
      for (const sandbox of sandboxes) {
        if (attack.script === undefined) continue;
        await sandbox.commands.start('/bin/sh', ['-c', attack.script], {
          stdout: 'ignore',
          stderr: 'ignore',
        });
      }
      return attackers;
    } catch (error) {
      await attackers[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sandboxes.map((sandbox) => sandbox[Symbol.asyncDispose]()));
  }
}

export async function putNoise(sandbox: Sandbox, program: Uint8Array): Promise<void> {
  await sandbox.files.write(`${NOISE_PLACE}.new`, program);
  const script = `chmod 755 ${NOISE_PLACE}.new && mv ${NOISE_PLACE}.new ${NOISE_PLACE}`;
  const { code } = await sandbox.exec('/bin/sh', ['-c', script]);
  if (code !== 0) throw new Error(`the program could not be put in place: ${code}`);
}
