import { withoutPreviews } from './previews.ts';
import { runOutcomes } from './run-outcomes.ts';
import { sandboxes } from './sandboxes.ts';

runOutcomes([sandboxes, withoutPreviews], ['--recovery-time', '1', '--preview-domain', 'off']);
