#ifndef SVC_CONTROL_H
#define SVC_CONTROL_H

#include "wire/dial.h"

// Requests of the engine on the control connection.
extern const struct dialled control_line;

#endif
