import { proveClaims } from './prove-claims.ts';

proveClaims('gvisor');
