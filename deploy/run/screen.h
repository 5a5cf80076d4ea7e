/* Screen: the complete terminal for a text that is drawn again and again.
 *     begin -> (draw -> wait) ... -> end
 * Promise   end leaves the terminal as begin found it, and a stop (Ctrl-Z) does so until the program goes on.
 *           A text with more lines than the terminal is cut, and its last line says so.
 * Thread    One, and one screen a process: signals change the terminal, too. */
#ifndef DP_RUN_SCREEN_H
#define DP_RUN_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* False: standard output is no terminal, and nothing was done. */
bool dp_screen_begin(void);
void dp_screen_end(void); /* may be called without begin */
void dp_screen_draw(const char *text);
/* Waits until at_ms (dp_now_ms), for a signal, for q on the keyboard (*quit), or for another size. */
void dp_screen_wait(uint64_t at_ms, bool *quit);

#endif
