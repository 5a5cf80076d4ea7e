/* Zmtp: a peer that speaks ZMTP 3.0 by hand, so that it can break the rules that libzmq keeps: messages without end, answers that
 * nobody reads.
 * Thread    Any, one at a time for each descriptor. */
#ifndef DP_TESTS_LIB_ZMTP_H
#define DP_TESTS_LIB_ZMTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Connected to 127.0.0.1; sends and reads wait 10 s at most. receive_bytes: its kernel's buffer, 0: as the system has it. -1: it was hung
 * up on. */
int dp_zmtp_open(uint32_t port, int receive_bytes);
/* The handshake of a DEALER, first of all. False: it was hung up on. */
bool dp_zmtp_shake_hands(int fd);
/* Both. */
int dp_zmtp_connect(uint32_t port, int receive_bytes);
/* A frame, whole. False: it was hung up on, or nobody took it in time. */
bool dp_zmtp_send(int fd, bool more, const void *bytes, size_t size);
/* Reads and throws away until the other side hangs up; false: it did not. */
bool dp_zmtp_hangs_up(int fd);

#endif
