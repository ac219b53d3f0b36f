#ifndef SVC_CONTROL_H
#define SVC_CONTROL_H

#include "wire/dial.h"

// What the engine asks for on the control connection.
extern const struct dialled control_line;

#endif
