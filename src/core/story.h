/* story.h - what happened to a job, in words: weir_job_story(). */
#ifndef WEIR_CORE_STORY_H
#define WEIR_CORE_STORY_H

#include "base/buf.h"

/* A length of time as one says it: "250 ms", "5.2 s", "3 min 1 s", "2 h 5 min", "4 d 0 h". */
void weir__say_ms(weir_buf *b, int64_t ms);

#endif
