/* The last resort against a driver call that never returns: a thread that ends the process, with a
 * message, when nobody has called watchdog_kick for a while. It measures host time. */
#pragma once

#include <stdint.h>

struct watchdog;

/* what: said in the message, copied at each kick. Exit status 1 when it fires. NULL when no thread
 * can be started (then there is no watchdog). */
struct watchdog *watchdog_start(int64_t limit_ns);
void watchdog_kick(struct watchdog *w, const char *what); /* w may be NULL */
void watchdog_stop(struct watchdog *w);                   /* w may be NULL */
