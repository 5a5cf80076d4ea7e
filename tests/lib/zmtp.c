#include "tests/lib/zmtp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define WAIT_S   10
#define GREETING 64

static bool send_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t size)
{
    return recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/* Greeting, then a READY command each; of the other's only the lengths matter. */
bool dp_zmtp_shake_hands(int fd)
{
    static const unsigned char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                                         "DEALER";
    unsigned char greeting[GREETING] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    unsigned char theirs[256];
    return send_all(fd, greeting, sizeof greeting) && send_all(fd, ready, sizeof ready - 1) &&
           receive_all(fd, theirs, GREETING) && receive_all(fd, theirs, 2) &&
           receive_all(fd, theirs, theirs[1]);
}

int dp_zmtp_open(uint32_t port, int receive_bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval wait = {.tv_sec = WAIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (receive_bytes > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int dp_zmtp_connect(uint32_t port, int receive_bytes)
{
    int fd = dp_zmtp_open(port, receive_bytes);
    if (fd < 0 || dp_zmtp_shake_hands(fd))
        return fd;
    (void)close(fd);
    return -1;
}

bool dp_zmtp_send(int fd, bool more, const void *bytes, size_t size)
{
    unsigned char head[9] = {(unsigned char)((more ? 1 : 0) | (size > 255 ? 2 : 0))};
    for (int i = 0; i < 8; i++)
        head[8 - i] = (unsigned char)(size >> 8 * i);
    if (size <= 255)
        head[1] = (unsigned char)size;
    return send_all(fd, head, size > 255 ? 9 : 2) && send_all(fd, bytes, size);
}

bool dp_zmtp_hangs_up(int fd)
{
    char bytes[65536];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}
