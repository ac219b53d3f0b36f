import { proveClaims } from './claims/prove-claims.ts';

proveClaims('container');
