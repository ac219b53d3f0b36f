import { Cgroups } from '../cgroup/cgroups.ts';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { crun } from '../runtime/crun.ts';
import { runc } from '../runtime/runc.ts';
import { runsc } from '../runtime/runsc.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';

/** Simulates an engine that is killed while it starts a sandbox: node start-and-die.ts RUNTIME FOLDER SPEC AFTER_MS */
const [name = '', folder = '', spec = '', afterMs = ''] = process.argv.slice(2);
const createRuntime = [runc, crun, runsc].find((candidate) => candidate.name === name) ?? runc;
const hostCalls = new SvcHostCalls({ processes: 1 });
const probe = { hostCalls, initProgram: '', folder, idBase: 0 };
const runtime = createRuntime({ folder, cgroups: new Cgroups(), hostCalls, probe });
// SAFETY of the type: the test wrote it.
const started = runtime.start(JSON.parse(spec) as RuntimeSpec, AbortSignal.timeout(100_000));
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(afterMs));
await started;
