import { passTo } from '../_shared/reclaim.ts';

Deno.serve(passTo('cleanup-orphaned-user'));
