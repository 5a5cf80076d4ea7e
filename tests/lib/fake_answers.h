/* Fake answers: what the servers of the fake transport answer out of order: status, positions, notes and the register. */
#ifndef DP_TESTS_LIB_FAKE_ANSWERS_H
#define DP_TESTS_LIB_FAKE_ANSWERS_H

#include "tests/lib/fake_transport.h"

void dp_fake_answer_status(const struct dp_fake_net *net, uint32_t index, struct dp_reply *reply);
/* As the client's promise has it: what was applied, one bit each. Gives the number of frames. */
uint32_t dp_fake_answer_heartbeat(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                                  struct dp_frame *frames);
uint32_t dp_fake_answer_positions(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                                  struct dp_reply *reply, struct dp_frame *frames);
uint32_t dp_fake_answer_notes(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                              struct dp_frame *frames);
/* false: no answer. */
bool dp_fake_answer_register(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                             struct dp_frame *frames);
/* A cut has the ids "ids of shard N" and no steps; a finish waits for all that is missing; other orders are prepared. */
uint32_t dp_fake_answer_checkpoint(uint32_t index, const struct dp_request *r, struct dp_reply *reply,
                                   struct dp_frame *frames);
/* The one value, as the whole register. */
uint32_t dp_fake_answer_register_copy(const struct dp_fake_net *net, struct dp_reply *reply,
                                      struct dp_frame *frames);

#endif
