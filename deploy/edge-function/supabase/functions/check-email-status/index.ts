import { passTo } from '../_shared/reclaim.ts';

Deno.serve(passTo('check-email-status'));
