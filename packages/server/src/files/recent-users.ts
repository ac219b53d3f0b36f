import { FileFailed, type ChannelFiles } from '@svc/contract';
import { GROUP, GuestUsers, PASSWD } from './guest-users.ts';

/** Sandboxes whose users are kept; a few kilobytes each. */
const MAX_KEPT = 256;
/** Times of files are compared in whole seconds: what was changed so lately may be changed again without a trace. */
const SETTLED_SECONDS = 2;
const MS_PER_SECOND = 1000;

interface Known {
  readonly state: string;
  readonly users: GuestUsers;
}

interface State {
  /** Sizes and times of both files. */
  readonly text: string;
  readonly isSettled: boolean;
}

/** The users of sandboxes, which nearly every call about files asks for: read anew when their files have changed. */
export class RecentUsers {
  readonly #known = new Map<string, Known>();

  async read(sandboxId: string, files: ChannelFiles, signal: AbortSignal): Promise<GuestUsers> {
    // Before the content, so that a change in between is seen by the next call.
    const { text: state, isSettled } = await stateOf(files, signal);
    const known = this.#known.get(sandboxId);
    this.#known.delete(sandboxId);
    const users = known?.state === state ? known.users : await GuestUsers.read(files, signal);
    if (isSettled) this.#keep(sandboxId, { state, users });
    return users;
  }

  /** The one that was used the longest ago is dropped. */
  #keep(sandboxId: string, known: Known): void {
    this.#known.set(sandboxId, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KEPT && oldest !== undefined) this.#known.delete(oldest);
  }
}

async function stateOf(files: ChannelFiles, signal: AbortSignal): Promise<State> {
  const found = await Promise.all([PASSWD, GROUP].map(async (path) => await timeOf(files, path, signal)));
  const latest = Math.max(...found.map(({ seconds }) => seconds));
  const isSettled = latest < Date.now() / MS_PER_SECOND - SETTLED_SECONDS;
  return { text: JSON.stringify(found), isSettled };
}

/** An image may lack the file. */
async function timeOf(files: ChannelFiles, path: string, signal: AbortSignal) {
  try {
    const { size, modifiedSeconds } = await files.stat(path, {}, signal);
    return { size, seconds: modifiedSeconds ?? Number.POSITIVE_INFINITY };
  } catch (error) {
    if (error instanceof FileFailed) return { size: -1, seconds: 0 };
    throw error;
  }
}
