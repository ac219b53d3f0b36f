#ifndef SVC_DIAL_H
#define SVC_DIAL_H

#include "wire/conn.h"

/** Handles a dialled connection: `opened` is called once, after our preamble. */
struct dialled {
  const struct conn_handler *handler;
  void (*opened)(struct conn *);
};

/** Reads the path and the token, wipes them from the environment, and keeps dialling the control connection. */
bool dial_init(const struct dialled *control, const struct dialled *session);
void dial_sessions(uint64_t count);
void dial_control_closed(void);
void dial_session_closed(struct conn *);
struct conn *dial_find(uint32_t number); // an open session connection

#endif
