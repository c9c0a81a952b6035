/* The last resort against a driver call that never returns: an alarm that ends the process, with a
 * message and exit status 1, when nobody has called watchdog_kick for so long. There is one. */
#pragma once

/* Begins, or begins again. what: said in the message. */
void watchdog_kick(const char *what, double limit_s);
void watchdog_stop(void);
