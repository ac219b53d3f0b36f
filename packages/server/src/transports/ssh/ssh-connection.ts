import { randomUUID } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Connection, ServerChannel, TcpipRequestInfo } from 'ssh2';
import { touchSshKey, type SshAccess } from '../../store/ssh-keys.ts';
import type { ChannelSlots } from '../channel/channel-slots.ts';
import { refuseTinyPackets } from './refuse-tiny-packets.ts';
import { SshLogin } from './ssh-login.ts';
import { SshOutput } from './ssh-output.ts';
import { serveSession } from './ssh-session.ts';
import type { SshSettings } from './ssh-settings.ts';
import { SshVisit, type SshVisitParts } from './ssh-visit.ts';
import type { TcpStream } from '@svc/contract/channel';
import { readHalf } from '../../published-ports/read-half.ts';

const CONNECT_MS = 30_000;

export interface SshConnectionParts extends SshVisitParts {
  readonly settings: SshSettings;
  readonly slots: ChannelSlots;
  readonly logger: Logger;
  readonly onLoggedIn: () => void;
}

/** One client, from its first packet to its last. */
export class SshConnection {
  readonly #parts: SshConnectionParts;
  readonly #client: Connection;
  readonly #socket: Socket;
  readonly #over = Promise.withResolvers<void>();
  #visit: SshVisit | undefined;
  #openChannels = 0;
  #lastTrafficAt = Date.now();
  #reason = 'the client left';

  constructor(parts: SshConnectionParts, client: Connection, socket: Socket) {
    this.#parts = parts;
    this.#client = client;
    this.#socket = socket;
    refuseTinyPackets(client);
    // A client that breaks off is expected; ssh2 ends the connection.
    client.on('error', () => undefined);
    client.on('close', () => this.#over.resolve());
    socket.once('close', () => this.#over.resolve());
    this.#logIn();
  }

  /** Resolves when the connection is over and its end is on record. */
  async whenOver(): Promise<void> {
    await this.#over.promise;
    await this.#visit?.noteClosed(this.#reason).catch(() => undefined);
  }

  end(reason: string): void {
    this.#reason = reason;
    this.#client.end();
    // A client that does not read cannot be told.
    this.#socket.destroySoon();
  }

  #logIn(): void {
    const { settings, database, logger } = this.#parts;
    const login = new SshLogin(database, settings.maxAttempts);
    const timer = setTimeout(() => this.end('it did not log in in time'), settings.loginMs);
    void this.#over.promise.then(() => clearTimeout(timer));
    let granted: SshAccess | undefined;
    this.#client.on('authentication', (context) => {
      login
        .answer(context, (access) => (granted = access))
        .then(
          (outcome) => {
            if (outcome === 'too many') this.end('it tried too many keys');
          },
          (error: unknown) => {
            logger.error({ err: error }, 'a login over SSH could not be checked');
            this.end('the login could not be checked');
          },
        );
    });
    // Each key exchange costs as much as the first one, and a login needs no second one.
    const onRekey = () => this.end('it exchanged keys instead of logging in');
    this.#client.on('rekey', onRekey);
    this.#client.once('ready', () => {
      clearTimeout(timer);
      this.#client.off('rekey', onRekey);
      this.#parts.onLoggedIn();
      if (granted === undefined) return this.end('the login was not completed');
      this.#welcome(granted).catch((error: unknown) => {
        logger.info({ err: error }, 'an SSH session was refused');
        this.end(error instanceof Error ? error.message : 'it was refused');
      });
    });
  }

  async #welcome(access: SshAccess): Promise<void> {
    const { database, slots, settings } = this.#parts;
    const { sandbox, key } = access;
    const release = slots.take(sandbox.id, sandbox.organizationId);
    void this.#over.promise.then(release);
    const address = this.#socket.remoteAddress ?? '';
    const sourceAddress = isIP(address) === 0 ? null : address;
    const visit = new SshVisit(this.#parts, { id: randomUUID(), access, sourceAddress });
    // Before anything is awaited: clients ask for a session right after they are let in.
    const opened = visit.noteOpened();
    this.#serve(visit, opened);
    const timer = setInterval(() => void this.#look(visit), settings.recheckMs);
    void this.#over.promise.then(() => clearInterval(timer));
    await opened;
    this.#visit = visit;
    await touchSshKey(database, key);
  }

  #serve(visit: SshVisit, opened: Promise<void>): void {
    const onTraffic = () => (this.#lastTrafficAt = Date.now());
    const { logger } = this.#parts;
    this.#client.on('session', (accept, reject) => {
      const leave = this.#enter();
      if (leave === undefined) return reject();
      serveSession({ visit, socket: this.#socket, onTraffic, logger }, accept(), leave);
    });
    this.#client.on('tcpip', (accept, reject, target) => {
      const leave = this.#enter();
      if (leave === undefined) return reject();
      void opened
        .then(() => this.#forward(visit, target, accept, onTraffic))
        .catch((error: unknown) => {
          logger.debug({ err: error }, 'a forwarded connection ended');
          // Without effect when the client already has a success.
          reject();
        })
        .finally(leave);
    });
  }

  async #forward(
    visit: SshVisit,
    { destIP: host, destPort: port }: TcpipRequestInfo,
    accept: () => ServerChannel,
    onTraffic: (bytes: number) => void,
  ): Promise<void> {
    visit.count('forwards');
    const channel = await visit.openChannel();
    try {
      const tooLate = AbortSignal.timeout(CONNECT_MS);
      const target = await channel.connectTcp(host, port, { signal: tooLate });
      const stream = accept();
      stream.on('error', () => undefined);
      stream.once('close', () => channel.close());
      try {
        await forwardTcp(stream, new SshOutput(stream, this.#socket, onTraffic), target, onTraffic);
      } finally {
        stream.end();
      }
    } finally {
      channel.close();
    }
  }

  /** Undefined when enough is open. */
  #enter(): (() => void) | undefined {
    if (this.#openChannels >= this.#parts.settings.channelsPerConnection) return undefined;
    this.#openChannels += 1;
    let isIn = true;
    return () => {
      if (isIn) this.#openChannels -= 1;
      isIn = false;
    };
  }

  async #look(visit: SshVisit): Promise<void> {
    const { inactivityMs } = this.#parts.settings;
    if (inactivityMs > 0 && Date.now() - this.#lastTrafficAt >= inactivityMs) return this.end('inactivity');
    try {
      if (!(await visit.isStillAllowed())) this.end('the key may not go on');
    } catch (error) {
      // A store that cannot be asked says nothing about the client.
      this.#parts.logger.debug({ err: error }, 'an SSH session could not be checked again');
    }
  }
}

/** Joins a connection that the client forwards to one that the sandbox made, until both directions have ended. */
async function forwardTcp(
  stream: ServerChannel,
  output: SshOutput,
  target: TcpStream,
  onReceived: (bytes: number) => void,
): Promise<void> {
  await Promise.all([
    output.pump(target.readable).then(() => {
      // Only our half: the client may have more to send.
      stream.eof();
    }),
    sendAll(stream, target, onReceived),
  ]);
}

async function sendAll(
  stream: ServerChannel,
  target: TcpStream,
  onReceived: (bytes: number) => void,
): Promise<void> {
  for await (const chunk of readHalf(stream)) {
    onReceived(chunk.length);
    await target.write(chunk);
  }
  await target.end();
}
