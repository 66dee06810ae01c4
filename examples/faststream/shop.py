"""A FastStream service: an invoice for each order."""

from faststream.confluent import KafkaRouter
from pydantic import BaseModel

PRICES = {"coffee": 3, "tea": 2}
router = KafkaRouter()


class Order(BaseModel):
    count: int
    what: str


class Invoice(BaseModel):
    total: int


@router.subscriber("orders", group_id="shop", auto_offset_reset="earliest")
@router.publisher("invoices")
async def write_invoice(order: Order) -> Invoice:
    return Invoice(total=order.count * PRICES[order.what])
