#ifndef SVC_NATIVE_CPUID_H
#define SVC_NATIVE_CPUID_H

#include "failure.h"

/**
 * From now on this thread, and what it starts, cannot have the instruction CPUID interrupted: whoever executes it is answered by the CPU.
 * Other architectures have no such instruction, and nothing is done there.
 */
int keep_cpuid_native(struct failure *failure);

#endif
