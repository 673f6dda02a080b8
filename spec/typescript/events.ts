// What openapi-typescript makes of the specs tells events apart by their name.
// It is compiled, not run: npm ci && npm test
import type { components, webhooks } from "./asaas.d.ts";
import type { webhooks as zeltapay } from "./zeltapay.d.ts";

type BodyOf<W> = W[keyof W] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;

/** Any event of Asaas. What is asked at the other webhook, Withdrawal, is none. */
export type AsaasEvent = Extract<BodyOf<webhooks>, { event: unknown }>;

/** Any event of Zelta Pay. */
export type ZeltaPayEvent = BodyOf<zeltapay>;

export function amount(e: AsaasEvent): number {
  switch (e.event) {
    case "PAYMENT_RECEIVED":
    case "PAYMENT_SPLIT_DONE":
      return e.payment.value;
    case "TRANSFER_DONE":
      // @ts-expect-error: a transfer has no payment
      e.payment;
      return e.transfer.value;
    case "PHONE_RECHARGE_CONFIRMED": // the other name of MOBILE_PHONE_RECHARGE_CONFIRMED
      return e.mobilePhoneRecharge.value;
    // @ts-expect-error: there is no such event
    case "PAYMENT_ON_THE_MOON":
      return 0;
  }
  return 0;
}

export function link(e: ZeltaPayEvent): string | null | undefined {
  return e.type === "payment.success" ? (e.paymentLinkId ?? e.paymentLink?.id) : undefined;
}

// Enums are open: a status may be newer than the spec.
export const newer: components["schemas"]["PaymentStatus"] = "NEWER";
