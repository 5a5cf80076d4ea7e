/* Limits of one message, checked before anything else looks at it. */
#ifndef DP_WIRE_LIMITS_H
#define DP_WIRE_LIMITS_H

#define DP_PROTOCOL_VERSION         3u
#define DP_SECTIONS_MAX             64u
#define DP_FRAMES_MAX               (1u + 2u * DP_SECTIONS_MAX)
#define DP_HEADER_BYTES_MAX         (256u << 10) /* of a reply: a status report is the longest */
#define DP_REQUEST_HEADER_BYTES_MAX (4u << 10)
#define DP_FRAME_BYTES_MAX          (256u << 20) /* one table's keys or values of one request */
#define DP_MESSAGE_BYTES_MAX        (512u << 20) /* all frames together */
#define DP_ROWS_MAX                 (4u << 20)   /* in one section */
#define DP_TIMEOUT_MS_MAX           (10u * 60u * 1000u)
#define DP_NOTE_BYTES_MAX           (64u << 20)
#define DP_NOTE_NAME_MAX            255u
#define DP_REGISTER_VALUE_BYTES_MAX (64u << 10)
#define DP_REGISTER_COPY_BYTES_MAX  (4u << 20) /* of the whole register */
#define DP_CLIENT_NAME_MAX          63u
#define DP_NOTES_MAX                (DP_FRAMES_MAX - 1u)
#define DP_POSITIONS_MAX            4096u /* numbers asked for at once */
#define DP_REASON_MAX               503u
#define DP_MEMBERS_MAX              1024u        /* of a view */
#define DP_EXAMPLES_MAX             (1ull << 40) /* behind one push: all members' fit into 64 bits */

#endif
