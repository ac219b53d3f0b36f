import { Cgroups } from '../cgroup/cgroups.ts';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';
import { runtimeNamed, type RuntimeName } from '../runtime/runtimes.ts';

/** Simulates an engine that is killed while it starts a sandbox: node start-and-die.ts RUNTIME FOLDER SPEC AFTER_MS */
const [name = '', folder = '', spec = '', afterMs = ''] = process.argv.slice(2);
const hostCalls = new SvcHostCalls({ processes: 1 });
const probe = { hostCalls, initProgram: '', folder, idBase: 0 };
// SAFETY of the types: the test wrote them.
const { create } = runtimeNamed(name as RuntimeName);
const runtime = create({ folder, cgroups: new Cgroups(), hostCalls, probe });
const started = runtime.start(JSON.parse(spec) as RuntimeSpec, AbortSignal.timeout(100_000));
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(afterMs));
await started;
