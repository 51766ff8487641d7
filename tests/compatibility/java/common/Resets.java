import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.InvalidOffsetException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;

/** auto.offset.reset for a new group, an expired offset and a trimmed log (ten records, of which five are gone). */
final class Resets {
    static void into(Map<String, Driver.Feature> features) {
        for (String state : new String[] {"new", "expired", "trimmed"}) {
            long start = state.equals("trimmed") ? 5 : 0;
            features.put("reset-earliest-" + state, cell -> earliest(cell, start));
            features.put("reset-latest-" + state, Resets::latest);
            features.put("reset-none-" + state, Resets::none);
        }
    }

    static Map<String, Object> earliest(Cell cell, long start) {
        try (KafkaConsumer<String, String> consumer = cell.subscribed("auto.offset.reset", "earliest")) {
            Cell.expectEqual(start, cell.read(consumer, 5).get(0).offset(), "the first offset");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> latest(Cell cell) throws Exception {
        try (KafkaConsumer<String, String> consumer = cell.subscribed("auto.offset.reset", "latest");
                KafkaProducer<String, String> producer = cell.producer()) {
            List<ConsumerRecord<String, String>> got = new java.util.ArrayList<>();
            Cell.await("a record that is written later", () -> {
                producer.send(cell.record(0, "later")).get();
                Version.poll(consumer, 200).forEach(got::add);
                return !got.isEmpty();
            });
            Cell.expectEqual("later", got.get(0).value(), "the first record");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> none(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.subscribed("auto.offset.reset", "none")) {
            cell.read(consumer, 1);
        } catch (InvalidOffsetException error) {
            return Cell.said("error", error.getClass().getSimpleName());
        }
        throw new AssertionError("no error was raised");
    }
}
