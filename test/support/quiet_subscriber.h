/* quiet_subscriber.h - callbacks of a subscriber whose messages nobody looks at. */
#ifndef WEIR_TEST_QUIET_SUBSCRIBER_H
#define WEIR_TEST_QUIET_SUBSCRIBER_H

#include <stddef.h>

static void ignore_message(void *ctx, size_t channel, const char *message, size_t len)
{
    (void)ctx;
    (void)channel;
    (void)message;
    (void)len;
}

static void not_lost(void *ctx, size_t channel)
{
    (void)ctx;
    (void)channel;
}

#endif
