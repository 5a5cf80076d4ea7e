/* Register service: turns requests for the register into replies; it has no socket and no clock.
 *     get -> answered, or waits -> (the value changes | its deadline passes) -> answered
 * Promise   A get names a version. If the value's version is not above it, the get waits until it is, or
 *           until its wait time is over; then it is answered with the current value. Each (session, id) has
 *           one waiting get: a resend replaces the first and restarts its wait. A waiting get that is not
 *           resent for DP_REGISTER_SILENT_NS is dropped, since its client has ended. At most
 *           DP_REGISTER_WAITERS_MAX gets wait; more fail with DP_FULL.
 *           A set that would take effect is checked first. A set that would change nothing is only
 *           answered, so a resend gets the first copy's result.
 * Thread    The control thread.
 * Memory    The register is borrowed. The callback owns the reply's frames. */
#ifndef DP_CONTROL_REGISTER_SERVICE_H
#define DP_CONTROL_REGISTER_SERVICE_H

#include "common/wire/reply.h"
#include "server/control/register.h"
#include "server/control/register_names.h"

#define DP_REGISTER_WAITERS_MAX 4096u
#define DP_REGISTER_SILENT_NS   (UINT64_C(60) * 1000000000u)

struct dp_control_register_service;

struct dp_control_register_service_options {
    struct dp_control_register *values;
    /* Whether this set may take effect; NULL: any may. */
    enum dp_status (*check)(void *context, const struct dp_control_names_set *set, struct dp_error *err);
    /* Sends a reply whose id and session are set, and takes ownership of the frames. */
    void (*answer)(void *context, const struct dp_peer *to, struct dp_reply *reply, struct dp_frame *frames,
                   uint32_t frame_count);
    void *context; /* of both */
};

enum dp_status dp_control_register_service_new(const struct dp_control_register_service_options *options,
                                               struct dp_control_register_service **out,
                                               struct dp_error *err);
void dp_control_register_service_free(struct dp_control_register_service **service); /* accepts NULL inside */
/* Handles a register_get, register_set or register_copy. If it fails, the caller answers the request with the status and
 * text. */
enum dp_status dp_control_register_service_take(struct dp_control_register_service *service, uint64_t now_ns,
                                                const struct dp_peer *from, const struct dp_request *request,
                                                struct dp_error *err);
/* Answers the gets whose wait is over, and drops those of silent clients. */
void dp_control_register_service_tick(struct dp_control_register_service *service, uint64_t now_ns);
/* Time of the next tick that has something to do; UINT64_MAX: no get waits. */
uint64_t dp_control_register_service_due_ns(const struct dp_control_register_service *service);

#endif
