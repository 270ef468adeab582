/* fuzz_error_mask.c - the error of a job. Its mask is one short line without digits, and of valid
 * UTF-8 where the error is. */
#include <string.h>

#include "base/json.h"
#include "core/error_mask.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char   mask[WEIR_MAX_ERROR_MASK + 1];
    char  *text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    size_t len = weir_mask_error(text, mask);
    MUST(len <= WEIR_MAX_ERROR_MASK && strlen(mask) == len);
    MUST(!strpbrk(mask, "0123456789\r\n"));
    MUST(!weir__utf8_valid(text, strlen(text)) || weir__utf8_valid(mask, len));
    weir_job job = { .type = "x", .error = text };
    MUST(weir__error_is(&job, mask));
    free(text);
    return 0;
}
