/** The input of a filter: one system call. */
export interface SystemCall {
  /** The kernel's AUDIT_ARCH number. */
  readonly architecture: number;
  readonly number: number;
  readonly args?: readonly bigint[];
}

interface Instruction {
  readonly code: number;
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly value: number;
}

const RET_ALLOW = 0x7fff_0000;
const RET_ERRNO = 0x0005_0000;

/** An interpreter for seccomp programs, so that filters for another architecture can be tested. */
export class FilterProgram {
  readonly #instructions: readonly Instruction[];

  private constructor(instructions: readonly Instruction[]) {
    this.#instructions = instructions;
  }

  /** One of the programs that filter-generate wrote into a C header. */
  static find(header: string, name: string): FilterProgram {
    const body = new RegExp(`${name}\\[\\] = \\{\n(.*?)\n\\};`, 's').exec(header)?.[1];
    if (body === undefined) throw new Error(`there is no ${name}`);
    const lines = body.split('\n').map((line) => line.match(/0x[0-9a-f]+|\d+/g)?.map(Number) ?? []);
    return new FilterProgram(
      lines.map(([code = 0, jumpTrue = 0, jumpFalse = 0, value = 0]) => ({
        code,
        jumpTrue,
        jumpFalse,
        value,
      })),
    );
  }

  get length(): number {
    return this.#instructions.length;
  }

  /** `allow`, or the number of the error. */
  run(call: SystemCall): 'allow' | number {
    const data = seccompData(call);
    let accumulator = 0;
    for (let at = 0; at < this.#instructions.length; at++) {
      const instruction = this.#instructions[at] as Instruction;
      const { code, value } = instruction;
      // The classes of linux/bpf_common.h that filters use.
      if (code === 0x20) accumulator = data.getUint32(value, true);
      else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
      else if (code === 0x05) at += value;
      else if (code === 0x06) return verdict(value);
      else at += holds(code, accumulator, value) ? instruction.jumpTrue : instruction.jumpFalse;
    }
    throw new Error('the filter ended without a verdict');
  }
}

/** struct seccomp_data: number, architecture, instruction pointer, six arguments. */
function seccompData({ architecture, number, args = [] }: SystemCall): DataView {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, number, true);
  data.setUint32(4, architecture, true);
  args.forEach((value, index) => data.setBigUint64(16 + index * 8, value, true));
  return data;
}

function holds(code: number, accumulator: number, value: number): boolean {
  switch (code) {
    case 0x15:
      return accumulator === value;
    case 0x25:
      return accumulator > value;
    case 0x35:
      return accumulator >= value;
    case 0x45:
      return (accumulator & value) !== 0;
    default:
      throw new Error(`instruction 0x${code.toString(16)} is not expected in a filter`);
  }
}

function verdict(value: number): 'allow' | number {
  if (value === RET_ALLOW) return 'allow';
  if ((value & 0xffff_0000) === RET_ERRNO) return value & 0xffff;
  throw new Error(`verdict 0x${value.toString(16)} is not expected of a filter`);
}
