/* values_json.c - see values_json.h. */
#include "cli/values_json.h"

#include <stdlib.h>
#include <string.h>
#include "cli/out_json.h"

static bool put_value(FILE *out, const char *text, bool first, weir_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        weir_fail(err, WEIR_EINVAL, "'%s' is not NAME=VALUE", text);
        return false;
    }
    size_t len = strlen(equals + 1);
    fputc(first ? '{' : ',', out);
    jw_string(out, text, (size_t)(equals - text));
    fputc(':', out);
    if (weir_json_valid(equals + 1, len))
        fwrite(equals + 1, 1, len, out);
    else
        jw_string(out, equals + 1, len);
    return true;
}

char *cli_values_json(const char *const *text, size_t n, weir_error *err)
{
    char  *json = NULL;
    size_t size;
    bool   ok = true;
    FILE  *out = open_memstream(&json, &size);
    for (size_t i = 0; out && ok && i < n; i++)
        ok = put_value(out, text[i], i == 0, err);
    if (out)
        fputc('}', out);
    if (!out || fclose(out)) {
        weir_fail(err, WEIR_ENOMEM, "values: out of memory");
        ok = false;
    }
    if (ok)
        return json;
    free(json);
    return NULL;
}
