/* bus_talk.h - a consumer that holds a conversation: it answers with 2, and the answer to that with
 * 4. */
#ifndef WEIR_TEST_BUS_TALK_H
#define WEIR_TEST_BUS_TALK_H

#include "weir/bus.h"

#define TEXT(text) (&(weir_content){ .body = (text) })

static void talk_on(const weir_reply *reply, void *ctx)
{
    (void)ctx;
    if (reply->message)
        weir_message_reply(reply->message, TEXT("4"), NULL);
}

static void talk(weir_message *m, void *ctx)
{
    (void)ctx;
    weir_message_request_async(m, TEXT("2"), &(weir_expect){ .fn = talk_on }, NULL);
}

#endif
