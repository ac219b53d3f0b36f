import type { Cgroups } from '../cgroup/cgroups.ts';
import type { OciOptions } from '../runtime/oci-runtime.ts';
import type { Runtime, RuntimeSpec, Started } from '../runtime/runtime.ts';
import { GuestControl } from './guest-control.ts';
import { realWorld } from './real-world.ts';

export interface StartedGuest {
  readonly runtime: Runtime;
  readonly spec: RuntimeSpec;
  readonly started: Started;
  readonly cgroups: Cgroups;
  readonly control: GuestControl;
  close(): Promise<void>;
}

/** A running sandbox whose svc-init is connected. */
export async function startedGuest(
  createRuntime: (options: OciOptions) => Runtime,
  changes: Partial<RuntimeSpec> = {},
): Promise<StartedGuest> {
  const world = await realWorld(createRuntime);
  const runtime = world.open();
  try {
    const spec = await world.spec(changes);
    const control = await GuestControl.listen(spec, () => world.cgroups.oomKills(spec.handle) > 0);
    world.defer(() => control.close());
    world.defer(() => runtime.remove(spec.handle));
    const started = await runtime.start(spec, AbortSignal.timeout(100_000));
    await control.connected();
    return { runtime, spec, started, cgroups: world.cgroups, control, close: () => world.close() };
  } catch (error) {
    await world.close();
    throw error;
  }
}
