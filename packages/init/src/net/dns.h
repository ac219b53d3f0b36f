#ifndef SVC_DNS_H
#define SVC_DNS_H

#include <stddef.h>

/** In the resolver's child process: writes up to ADDRESSES_MAX records (address.h) for the name, and returns how many. */
size_t look_up(const char *host, unsigned char *records);

#endif
