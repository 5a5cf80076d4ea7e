/* Header: packing and checking of the first frame, shared by requests and replies. Of this room only. */
#ifndef DP_WIRE_HEADER_H
#define DP_WIRE_HEADER_H

#include "common/wire/limits.h"
#include "common/wire/message.h"

#include <protobuf-c/protobuf-c.h>

/* The first frame as a generated struct, freed with protobuf_c_message_free_unpacked(.., NULL). `what` names
 * it in messages ("request"). bytes_max: of the frame. */
enum dp_status dp_header_unpack(const struct dp_message *message,
                                const ProtobufCMessageDescriptor *descriptor, const char *what,
                                size_t bytes_max, ProtobufCMessage **out, struct dp_error *err);

/* A message of the packed header and the frames, which it takes over, also on failure. */
enum dp_status dp_header_pack(const ProtobufCMessage *header, const char *what, size_t bytes_max,
                              struct dp_frame *frames, uint32_t frame_count, struct dp_message **out,
                              struct dp_error *err);

/* Copies a name into `out` (len_max + 1 bytes). DP_INVALID naming `field` unless it has len_min .. len_max
 * bytes, none of them a control character. */
enum dp_status dp_header_name(const char *field, const char *name, size_t len_min, size_t len_max, char *out,
                              struct dp_error *err);

#endif
