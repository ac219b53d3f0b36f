/** The first line, by which `svc install` recognizes a unit that it wrote itself. */
export const UNIT_MARK = '# Written by svc install --systemd; svc install --remove takes it away.';

/**
 * The systemd unit of the server. `program`: path of svc. `dataFolder` undefined: the default of svc.
 * Sandboxes outlive the server, so systemd ends only the server's own process.
 */
export function systemdUnit(program: string, dataFolder: string | undefined): string {
  const path = dataFolder === undefined ? '' : ` --path ${quoted(dataFolder)}`;
  return `${UNIT_MARK}
[Unit]
Description=svc, a server that runs untrusted code in sandboxes
Wants=network-online.target
After=network-online.target
# However often and quickly it fails, while its database is away say, it is tried again.
StartLimitIntervalSec=0

[Service]
# It is told when the server answers, which takes seconds.
Type=notify
NotifyAccess=main
TimeoutStartSec=300
# Options of svc server start, such as SVC_SERVER_OPTIONS=--host 0.0.0.0 --port 5555
EnvironmentFile=-/etc/default/svc
ExecStart=${quoted(program)}${path} server start $SVC_SERVER_OPTIONS
Restart=always
# The supervisor tells every twenty seconds that it is alive. SIGKILL also ends one that was stopped by a signal.
WatchdogSec=60
WatchdogSignal=SIGKILL
RestartSec=1
# A wrong option, and a server that runs already, stay so.
RestartPreventExitStatus=2 3
# The engine and what keeps sandboxes running go on, and are found again by the next server.
KillMode=process
TimeoutStopSec=60
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576
# The server answers also while every sandbox computes.
CPUWeight=1000
OOMScoreAdjust=-500

[Install]
WantedBy=multi-user.target
`;
}

/** Quotes a word for systemd and doubles its special characters. */
function quoted(path: string): string {
  const escaped = path
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('%', '%%')
    .replaceAll('$', '$$$$');
  return /[\s"'\\;]/.test(path) ? `"${escaped}"` : escaped;
}
