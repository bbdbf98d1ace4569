/* Receipts come from anyone who may write to the queue: whatever came either is one, with bounds kept, or says what is
 * wrong with it. */
#include "events/receipt.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = fuzz_text(data, size);
    struct receipt r;
    struct why why = {""};
    enum err e = receipt_parse(text, &r, &why);
    PROMISE(e == OK || (e == ERR_INPUT && why.text[0]));
    if (e == OK) {
        PROMISE(str_is_uuid(str_of(r.customer_id)));
        PROMISE(r.participant[0] && str_is_utf8(str_of(r.participant)));
        PROMISE(r.rows >= -1);
        PROMISE(strlen(r.error) < sizeof r.error && str_is_utf8(str_of(r.error)));
    }
    fuzz_text_free(text);
    return 0;
}
