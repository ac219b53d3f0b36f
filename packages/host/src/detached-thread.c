#include "detached-thread.h"

#include <pthread.h>

bool start_detached_thread(void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error == 0;
}
