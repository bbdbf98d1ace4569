/* Private to src/pages: the certificate of an erasure, or how far the erasure is, in words.
 *
 * Two requests lead there: the link of the last mail (certificate.c), and the operators' console (admin_certificate.c and the page
 * of a customer). Both read the certificate, then the key set, and the page says whether it holds. */
#ifndef PAGES_CERTIFICATE_H
#define PAGES_CERTIFICATE_H

#include "pages/page.h"

/* For `answered` of the certificate's endpoint, 200: keeps the certificate and reads the key set; returns false. */
bool certificate_ask_keys(struct page *p, bool (*then)(struct page *p));
/* For that `then`: sets `certificate`, its claims with words for people, when it holds; otherwise `broken`, the reason. False:
 * the key set could not be read. */
bool certificate_set(struct page *p);
/* For `answered` of the ledger's endpoint: sets `services`, `confirmed`, `waiting` and `kept`. False: there is no ledger. */
bool certificate_set_progress(struct page *p);

/* Whether the endpoint refused with this code. */
bool certificate_is_refused(struct page *p, const char *code);

/* The page of what was set, and the file. */
bool certificate_write_page(struct page *p);
bool certificate_write_progress(struct page *p);
bool certificate_write_file(struct page *p, const char *customer);

#endif
