/* Every advisory lock that Reclaim takes.
 *
 * The clean-up's locks on addresses have one number (reclaim.email_to_lock_id), as other programs take them too. All
 * others have two: a class of Reclaim's own, and what is locked in it. PostgreSQL keeps the two kinds apart, so
 * `reclaim locks` can list the clean-up's alone. SQL functions repeat these numbers; the lint compares. */
#ifndef PG_LOCK_IDS_H
#define PG_LOCK_IDS_H

#define LOCK_CLASS "1919247212" /* "recl" in ASCII; the second number is one of these: */
#define LOCK_MIGRATION "1"
#define LOCK_LEADER "2"
#define LOCK_PARTICIPANTS "4" /* shared by deletions, exclusive for adding a participant */
#define LOCK_ERASURES "5"     /* which erasures are complete: reclaim.erasures_settle */
#define LOCK_IMPORT "6"       /* one batch of imported customers at a time, so that none is imported twice */
#define LOCK_SEALED_LOG "7"   /* appending to the sealed log: src/proof/sealed_log.c */
#define LOCK_CERTIFYING "8"   /* exclusive for the leader, shared by what opens receipts: reclaim.cascade_resume */

/* The second number is a hash. */
#define LOCK_CLASS_CUSTOMER "1919247213"    /* reclaim.customer_turn */
#define LOCK_CLASS_PARTICIPANT "1919247214" /* a page of one participant at a time: reclaim.cascade_page */
#define LOCK_CLASS_CALL_GROUP "1919247215"  /* legs of a group call join in turn: reclaim.call_begin */
#define LOCK_CLASS_LIMIT "1919247216"       /* keys of Reclaim's own rate limits: reclaim.limit_stripe */
#define LOCK_CLASS_OTHER_LIMIT "1919247217" /* keys of other programs: reclaim.check_rate_limit */
#define LOCK_CLASS_TIER "1919247218"        /* recording the window of another program's tier */

#endif
